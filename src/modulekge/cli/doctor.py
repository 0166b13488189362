"""The command that looks at this installation; it says so too where PyTorch cannot be imported."""

import json
from dataclasses import asdict

from modulekge.cli.app import Json, app


@app.command(epilog="Example: modulekge doctor")
def doctor(as_json: Json = False) -> None:
    """Look at this installation: versions, extras, devices, kernels, memory, disk, where data sets are.

    torch.compile, and on a GPU a kernel of Triton, are tried and not guessed, which takes seconds or more.
    What keeps the program from working is an error. A graph is looked at by 'data doctor'.
    """
    from modulekge import render
    from modulekge.errors import ModulekgeError
    from modulekge.installation import package_checks, torch_check

    checks = list(package_checks())
    trouble = torch_check()
    if trouble:
        checks = [check for check in checks if check.name != trouble.name] + [trouble]
    if not any(check.level == "problem" for check in checks):
        from modulekge.commands.doctor import machine_checks

        with render.stages_display(4) as begin:
            checks += machine_checks(begin)
    problems = [check for check in checks if check.level == "problem"]
    if as_json:
        print(json.dumps({"ready": not problems, "checks": [asdict(check) for check in checks]}))
    else:
        render.console().print(render.checks_view(checks))
    if problems:
        raise ModulekgeError("; ".join(f"{check.name} {check.found}; {check.advice}" for check in problems))
