"""The contracts beside Python: the same states, the same bill, the same page of documentation."""
