"""How answers are shown to people: one file for each form, which says all that differs by it.

A form is a `msgspec.Struct` derived from `AnswerForm`: what a run's document keeps of the answers
to one input, with what is wrong in such a document, how it is said in words, the columns of tables,
and the block of a card, whose template has the name of the file. `answer_forms.py` lists them.
A package brings a form of its own by an entry point of the group `edgeflare.answers`.
"""
