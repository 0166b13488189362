"""dicee by the script of its README for UMLS: Keci, KvsAll, 100 epochs, 32 numbers to an entity.

It fetches GPT-2's encoding of text whenever it opens a graph, also where nothing is encoded, as here; so that
it runs without the network, it is given one of bytes.
"""

import shutil
from pathlib import Path

import tiktoken
import torch
from harness import main

Path("KG").mkdir()
for split in ("train", "valid", "test"):
    shutil.copy(f"{split}.tsv", f"KG/{split}.txt")
RANKS = {bytes([i]): i for i in range(256)}
BYTES = tiktoken.Encoding("bytes", pat_str=".", mergeable_ranks=RANKS, special_tokens={})
tiktoken.get_encoding = lambda name: BYTES


def train():
    """The script of its README."""
    from dicee.config import Namespace
    from dicee.executer import Execute

    args = Namespace()
    args.model = "Keci"
    args.scoring_technique = "KvsAll"
    args.dataset_dir = "KG"
    args.path_to_store_single_run = "trained"
    args.num_epochs = 100
    args.embedding_dim = 32
    args.batch_size = 1024
    Execute(args).start()


@torch.no_grad()
def scores(_, questions, entities):
    """Its score of each tail; heads by the inverse relations that it trains beside the others."""
    from dicee import KGE

    kge = KGE(path="trained")
    order = [kge.entity_to_idx[name] for name in entities]
    found = []
    for entity, relation, tail in questions:
        asked = [kge.entity_to_idx[entity], kge.relation_to_idx[relation if tail else f"{relation}_inverse"]]
        found.append(kge.model(torch.tensor([asked]))[0, order].numpy())
    return found


main(train, scores, "dicee")
