"""The `plancast` command. One module a subcommand; nothing heavy is imported before it runs."""
