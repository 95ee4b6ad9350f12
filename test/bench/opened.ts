interface Closable {
  close(): Promise<unknown>;
}

export type Keep = <C extends Closable>(opened: C) => C;

export async function withOpened<T>(work: (keep: Keep) => Promise<T>): Promise<T> {
  const opened: Closable[] = [];
  const keep: Keep = (resource) => {
    opened.push(resource);
    return resource;
  };
  try {
    return await work(keep);
  } finally {
    for (const resource of opened.toReversed()) await resource.close();
  }
}
