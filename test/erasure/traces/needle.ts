/** Bytes that identify a person, with a name that does not. */
export interface Needle {
  readonly name: string;
  /** `text`: a string that a client sent. `key`: a representation of an identity key. */
  readonly kind: 'text' | 'key';
  readonly bytes: Buffer;
}

export interface Trace {
  /** `table events`, `redis i:{env}:<bucket>`, or a file. */
  readonly location: string;
  readonly needle: string;
  readonly kind: Needle['kind'];
  /** Number of rows, keys or matches in a file. */
  readonly count: number;
}

export const textNeedle = (name: string, text: string): Needle => ({ name, kind: 'text', bytes: Buffer.from(text) });

/** Creates needles for all representations of a key: raw bytes and hexadecimal strings. */
export function keyNeedles(name: string, key: Buffer): Needle[] {
  const hex = key.toString('hex');
  return [
    { name, kind: 'key', bytes: key },
    { name: `${name} in hexadecimal`, kind: 'key', bytes: Buffer.from(hex) },
    { name: `${name} in upper-case hexadecimal`, kind: 'key', bytes: Buffer.from(hex.toUpperCase()) },
  ];
}

export function findInBytes(location: string, bytes: Buffer, needles: readonly Needle[]): Trace[] {
  return needles.flatMap(({ name, kind, bytes: wanted }) => {
    let count = 0;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) count++;
    return count === 0 ? [] : [{ location, needle: name, kind, count }];
  });
}

export const locationsIn = (traces: readonly Trace[]): string[] =>
  [...new Set(traces.map(({ location }) => location))].sort();
