"""What reaches a terminal."""

from modulekge.render.terminal import console, new_table


def test_names_are_shown_and_not_obeyed(capsys):
    table = new_table("name")
    table.add_row("\x1b[2Jwiped\x9b31m é")
    console().print(table)
    assert capsys.readouterr().out.splitlines()[1].rstrip() == "␛[2Jwiped\ufffd31m é"
