"""Ways to show a survey: words, tables, pages and files."""
