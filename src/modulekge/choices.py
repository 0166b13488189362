"""Names that the command line offers before anything heavy is loaded; tests hold them to what they name."""

FEW = 10  # answers, where it is not said how many
EXPORT_FORMATS = ("numpy", "parquet", "word2vec", "hub", "index", "rdf")
PARAMETRIZATIONS = ("normalised", "exponential", "angles")
RDF_FILES = (".nt", ".ttl")
PICTURES = (".png", ".svg")
SEARCH_SPACES = ("paper", "wide", "paths")
STUDIES = (
    "results", "ablation", "relations", "size", "convergence", "extended", "best", "interpretations", "paths",
    "debian", "debian-forky",
)  # fmt: skip
SYNTHETIC_PATTERNS = ("symmetric", "inverse", "composed", "hierarchical", "random")
T_NORMS = ("product", "godel", "lukasiewicz")
TABLES = (".csv", ".jsonl", ".parquet")
TRACKERS = ("tensorboard", "mlflow", "wandb")
