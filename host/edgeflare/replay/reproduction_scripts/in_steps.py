"""Answers of a model that is resized, or run by another signature, between two invocations."""

from typing import Any


def answers(opens: Any, stored: Any, told: Any) -> Any:
    """Return the outputs of all steps for each row of inputs.

    Args:
        opens: opens the model.
        stored: the inputs by name, with all rows.
        told: how many `rows` there are; and the `steps`, each with its signature, empty for the
            model's graph, and how its inputs are named.

    """
    found = []
    for row in range(told["rows"]):
        model, made = opens(), []
        for step in told["steps"]:
            prefix = f"{step['inputs']} "
            given = [stored[name][row] for name in stored.files if name.startswith(prefix)]
            made += by_signature(model, step, given) if step["signature"] else resized(model, given)
        found.append(made)
    return found


def resized(model: Any, given: Any) -> Any:
    """Return the outputs of a model in the shapes of its inputs."""
    inputs = model.get_input_details()
    for tensor, values in zip(inputs, given, strict=True):
        model.resize_tensor_input(tensor["index"], values.shape)
    model.allocate_tensors()
    for tensor, values in zip(inputs, given, strict=True):
        model.set_tensor(tensor["index"], values)
    model.invoke()
    return [model.get_tensor(output["index"]) for output in model.get_output_details()]


def by_signature(model: Any, step: Any, given: Any) -> Any:
    """Return the outputs of a signature, whose tensors are in the order of their names."""
    runner = model.get_signature_runner(step["signature"])
    made = runner(**dict(zip(sorted(runner.get_input_details()), given, strict=True)))
    return [made[name] for name in sorted(made)]
