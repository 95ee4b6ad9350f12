/** Returns `kafka` for the first process of a kind, `kafka-2` for the second. */
export const nodeName = (kind: string, id: number): string => (id === 1 ? kind : `${kind}-${id}`);

export const nodeNames = (kind: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => nodeName(kind, index + 1));

/** Returns the kind and the number of a process: `kafka` and 2 for `kafka-2`. */
export function parseNodeName(name: string): { kind: string; id: number } {
  const [, kind = name, id = '1'] = /^(.+)-(\d+)$/.exec(name) ?? [];
  return { kind, id: Number(id) };
}
