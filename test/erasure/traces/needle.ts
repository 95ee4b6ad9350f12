/** Bytes that identify a person, with a name that does not identify the person. */
export interface Needle {
  readonly name: string;
  /** Whether the bytes are a string that a client sent, or a form of an id's keyed hash. */
  readonly kind: 'text' | 'key';
  readonly bytes: Buffer;
}

/** A needle that was found. */
export interface Trace {
  /** `table events`, `redis i:{env}:<bucket>`, or a file. */
  readonly location: string;
  readonly needle: string;
  readonly kind: Needle['kind'];
  /** Number of rows, keys or matches in a file. */
  readonly count: number;
}

/** A string as clients sent it. */
export const textNeedle = (name: string, text: string): Needle => ({ name, kind: 'text', bytes: Buffer.from(text) });

/** A keyed hash in all forms: the bytes in columns and records, and the hexadecimal strings in logs. */
export function keyNeedles(name: string, key: Buffer): Needle[] {
  const hex = key.toString('hex');
  return [
    { name, kind: 'key', bytes: key },
    { name: `${name} in hexadecimal`, kind: 'key', bytes: Buffer.from(hex) },
    { name: `${name} in upper-case hexadecimal`, kind: 'key', bytes: Buffer.from(hex.toUpperCase()) },
  ];
}

/** Searches bytes for all needles. */
export function findInBytes(location: string, bytes: Buffer, needles: readonly Needle[]): Trace[] {
  return needles.flatMap(({ name, kind, bytes: wanted }) => {
    let count = 0;
    for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) count++;
    return count === 0 ? [] : [{ location, needle: name, kind, count }];
  });
}

/** The distinct locations of traces. */
export const locationsIn = (traces: readonly Trace[]): string[] =>
  [...new Set(traces.map(({ location }) => location))].sort();
