/**
 * Creates a question about one name that shares its request with all that are asked in the same turn of the event loop.
 * Copies of many logs are compared at the same moment: each comparison alone would cost the brokers three requests or more.
 * @param ask answers for several names at once; names without an answer are absent
 */
export function createGathered<T>(
  ask: (names: readonly string[]) => Promise<ReadonlyMap<string, T>>,
): (name: string) => Promise<T | undefined> {
  let next: {
    readonly names: Set<string>;
    readonly answers: Promise<(name: string) => Promise<T | undefined>>;
  } | null = null;
  const send = async (names: Set<string>) => {
    await new Promise((resolve) => setImmediate(resolve));
    next = null;
    try {
      const answers = await ask([...names]);
      return async (name: string) => answers.get(name);
    } catch (fault) {
      if (names.size === 1) throw fault;
      // One topic without a leader must not hide the others.
      return async (name: string) => (await ask([name])).get(name);
    }
  };
  return async (name) => {
    if (next === null) {
      const names = new Set<string>();
      next = { names, answers: send(names) };
    }
    next.names.add(name);
    return (await next.answers)(name);
  };
}
