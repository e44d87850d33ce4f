"""Why a model may not ship: the rules that find a cause, by what is to blame."""
