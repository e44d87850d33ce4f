"""Whether the kernels of a device compute what operators mean.

The rooms within, each of which may import those after it: `rounds` draws, runs, judges and shrinks
models; `presentation`, beside it, has the reports; `graphs` tries operators together that are right
alone; `record` keeps; `findings` says what failing models have in common; `verdict` judges answers;
`execution` runs models; `drafts` are models as they are drawn; `operators` has a declaration for
each operator; `specification` says what a declaration is.

A conformance run has a journal of its own, `conform.db`, since it has no pair, no seeds and no arms
of models; what it keeps are rounds. On resume the models of a round are drawn again and have to
have the digest that was kept; its verdicts are taken, and coverage and refinement follow from them.
Shrinking is not kept: it is done anew, in minutes.

Whatever runs models raises `InfrastructureError` where an arm is lost, and whatever reads a round
`UserError` where that is damaged; only other errors are named at functions.
"""
