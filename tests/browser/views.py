"""The address of every view of the page."""

from urllib.parse import quote

VIEWS = {
    "start": "#/",
    "entity": "#/entity?name=France",
    "ask": "#/ask?head=France&relation=borders",
    "relations": "#/ask?head=France&tail=Spain",
    "why": "#/why?head=France&relation=borders&tail=Spain",
    "around": "#/around?name=France",
    "map": "#/map?name=France",
    "run": "#/run",
    "compound": "#/compound",
    "compound asked": "#/compound?q="
    + quote("?x where France borders ?x and not ?x member_of 'European Union'"),
    "relation": "#/relation?name=borders",
    "review": "#/review",
    "bulk": "#/bulk",
    "compare": "#/compare?run=DistMult&with=ComplEx&head=France&relation=borders",
}
