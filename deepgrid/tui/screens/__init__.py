"""The screens. Each shows what is known at once, and says in a sentence what is missing and why."""
