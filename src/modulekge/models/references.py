"""Where each model was proposed."""

from modulekge.models.spec import PATHS, ModelSpec

_REFERENCES = {
    PATHS: "Zhu, Zhang, Xhonneux, Tang: Neural Bellman-Ford Networks. NeurIPS 2021",
    "ModulE": "Chai, Shi: ModulE: Module Embedding for Knowledge Graphs. arXiv 2203.04702, 2022",
    "TransE": "Bordes et al.: Translating Embeddings for Modeling Multi-relational Data. NIPS 2013",
    "DistMult": "Yang et al.: Embedding Entities and Relations for Learning and Inference in Knowledge "
    "Bases. ICLR 2015",
    "ComplEx": "Trouillon et al.: Complex Embeddings for Simple Link Prediction. ICML 2016; with N3: "
    "Lacroix, Usunier, Obozinski: Canonical Tensor Decomposition for Knowledge Base Completion. ICML 2018",
    "RotatE": "Sun, Deng, Nie, Tang: RotatE: Knowledge Graph Embedding by Relational Rotation in Complex "
    "Space. ICLR 2019",
    "QuatE": "Zhang, Tay, Yao, Liu: Quaternion Knowledge Graph Embeddings. NeurIPS 2019",
    "HAKE": "Zhang, Cai, Zhang, Wang: Learning Hierarchy-Aware Knowledge Graph Embeddings for Link "
    "Prediction. AAAI 2020",
    "NagE": "Yang, Sha, Hong: NagE: Non-Abelian Group Embedding for Knowledge Graphs. CIKM 2020",
    "DensE": "Lu, Hu, Lin: DensE: An Enhanced Non-commutative Representation for Knowledge Graph Embedding "
    "with Adaptive Semantic Hierarchy. Neurocomputing 476, 2022; arXiv 2008.04548, 2020",
    "HopfE": "Bastos et al.: HopfE: Knowledge Graph Representation Learning using Inverse Hopf Fibrations. "
    "CIKM 2021",
    "GrpQ8": "Yang et al., CIKM 2021, as the ModulE paper cites it; the row is our interpretation, the group "
    "algebra R[Q8], made without its text",
    "RotE": "Chami, Wolf, Juan, Sala, Ravi, Re: Low-Dimensional Hyperbolic Knowledge Graph Embeddings. "
    "ACL 2020",
    "BiQUE": "Guo, Kok: BiQUE: Biquaternionic Embeddings of Knowledge Graphs. EMNLP 2021",
}


def reference(spec: ModelSpec) -> str:
    """Return the publication in which a row, or the row it is a form of, was proposed."""
    name = spec.name.removeprefix(f"{PATHS}-")
    proposed = _REFERENCES[name.split("-")[0]]
    return f"{_REFERENCES[PATHS]}; its messages: {proposed}" if spec.along_paths else proposed
