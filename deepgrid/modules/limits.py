"""What the modules of one workflow may cost."""

MOST_USES = 100  # in all, modules in modules included
MOST_DEEP = 8  # modules in modules
WITHIN_S = 120.0  # all of them
FETCH_WITHIN_S = 60.0  # one repository
MOST_REPOSITORY_BYTES = 128 * 1024**2
MOST_FILE_BYTES = 256 * 1024  # a module file, and what its template becomes
TEMPLATE_WITHIN_S = 10.0
TEMPLATE_CPU_S = 5
TEMPLATE_MEMORY_BYTES = 512 * 1024**2
