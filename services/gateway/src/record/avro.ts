/** Writes of Avro's binary encoding into a buffer that has room for them. Each returns the place behind what it wrote. */

/** Avro long of a safe integer: zigzag, then seven bits a byte, lowest first. */
export function putLong(target: Buffer, place: number, value: number): number {
  let at = place;
  let rest = value >= 0 ? value * 2 : -value * 2 - 1;
  while (rest > 0xffffffff) {
    target[at++] = (rest % 128) | 128;
    rest = Math.floor(rest / 128);
  }
  while (rest > 127) {
    target[at++] = (rest & 127) | 128;
    rest >>>= 7;
  }
  target[at++] = rest;
  return at;
}

/** Avro string of a JavaScript string. */
export function putText(target: Buffer, place: number, text: string): number {
  const at = putLong(target, place, Buffer.byteLength(text));
  return at + target.write(text, at);
}

/** Bytes as they are, few of them: a loop beats the call into Buffer.copy. */
export function putAll(target: Buffer, at: number, source: Buffer): number {
  const { length } = source;
  for (let i = 0; i < length; i++) target[at + i] = source[i]!;
  return at + length;
}
