/** Variables that any program may need: paths of programs and libraries, language, time zone, temporary files. */
const OF_THE_MACHINE = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|JAVA_HOME|(DY)?LD_LIBRARY_PATH)$/;

/**
 * The environment of a store. It has nothing that was set for a service or for another deployment. The registry, for
 * one, would read LOG_LEVEL and settings of its own from there.
 */
export function storeEnvironment(
  environment: Record<string, string | undefined> = process.env,
): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => OF_THE_MACHINE.test(name)));
}
