interface Closable {
  close(): Promise<unknown>;
}

export type Keep = <C extends Closable>(opened: C) => C;

/** Runs `work`, and then closes everything that it has passed to `keep`, the latest first. */
export async function withOpened<T>(work: (keep: Keep) => Promise<T>): Promise<T> {
  const opened: Closable[] = [];
  const keep: Keep = (one) => {
    opened.push(one);
    return one;
  };
  try {
    return await work(keep);
  } finally {
    for (const one of opened.toReversed()) await one.close();
  }
}
