"""What pages of every command are made of: `answers` shows answers, and plots of two inputs."""
