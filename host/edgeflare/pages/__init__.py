"""What a command says, a page, and the forms that show it; `answers` shows answers in them."""
