interface Closable {
  close(): Promise<unknown>;
}

/** Runs `work`, and then closes everything that it has passed to `keep`, the latest first. */
export async function withOpened<T>(work: (keep: <C extends Closable>(opened: C) => C) => Promise<T>): Promise<T> {
  const opened: Closable[] = [];
  const keep = <C extends Closable>(one: C): C => {
    opened.push(one);
    return one;
  };
  try {
    return await work(keep);
  } finally {
    for (const one of opened.toReversed()) await one.close();
  }
}
