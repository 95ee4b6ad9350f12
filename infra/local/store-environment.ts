/** What any program may need of its machine: where programs and libraries lie, language, time zone, temporary files. */
const OF_THE_MACHINE = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|JAVA_HOME|(DY)?LD_LIBRARY_PATH)$/;

/**
 * The environment of a store: nothing that somebody set for a service or for another deployment. The registry, for one,
 * reads LOG_LEVEL and every setting of its own from there.
 */
export function storeEnvironment(
  environment: Record<string, string | undefined> = process.env,
): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => OF_THE_MACHINE.test(name)));
}
