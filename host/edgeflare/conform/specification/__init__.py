"""What an operator is: its types, its parameters, its models and its exact answers."""
