const MACHINE_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|JAVA_HOME|(DY)?LD_LIBRARY_PATH)$/;

/** Returns only general variables, because stores may interpret service settings: the registry would read LOG_LEVEL. */
export function storeEnvironment(
  environment: Record<string, string | undefined> = process.env,
): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => MACHINE_VARIABLES.test(name)));
}
