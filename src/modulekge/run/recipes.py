"""Recipes: settings of models on data sets, in files that the package holds."""

from pathlib import Path

RECIPES = Path(__file__).parent.parent / "recipes"
_RENAMED = {"-plus": "-extended", "-beyond": "-best"}  # endings of names, before and now


def find_recipe(dataset: str, model: str) -> Path | None:
    """Return the recipe for this model on this data set."""
    path = RECIPES / dataset / f"{model}.toml"
    return path if path.is_file() else None


def recipe_at_hand(recipe: Path) -> Path:
    """Return a recipe file; ``recipes/...`` is the package's own where there is no such file."""
    if recipe.parts[:1] != (RECIPES.name,) or recipe.exists():
        return recipe
    packaged = RECIPES.parent / recipe
    for before, now in _RENAMED.items():
        if packaged.stem.endswith(before):
            packaged = packaged.with_stem(packaged.stem.removesuffix(before) + now)
    return packaged if packaged.is_file() else recipe
