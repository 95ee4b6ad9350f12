interface Closable {
  close(): Promise<unknown>;
}

export type Keep = <C extends Closable>(opened: C) => C;

const opened: Closable[] = [];

/** Closes what is open, the last opened first. A signal ends the program without `finally` blocks. */
export async function closeOpened(from = 0): Promise<void> {
  for (const resource of opened.splice(from).toReversed()) await resource.close();
}

export async function withOpened<T>(work: (keep: Keep) => Promise<T>): Promise<T> {
  const from = opened.length;
  const keep: Keep = (resource) => {
    opened.push(resource);
    return resource;
  };
  try {
    return await work(keep);
  } finally {
    await closeOpened(from);
  }
}
