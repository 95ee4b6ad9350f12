/** A sequential reader of RowBinary values, independent of the writer. */
export interface RowBinary {
  remaining(): number;
  take(count: number): Buffer;
  text(): string;
  /** Reads epoch milliseconds, or any other signed 8-byte integer. */
  time(): number;
  uuid(): string;
  key(): string;
}

export function createRowBinary(bytes: Buffer): RowBinary {
  let at = 0;
  const take = (count: number) => {
    if (at + count > bytes.length) throw new Error('the last row is truncated');
    at += count;
    return bytes.subarray(at - count, at);
  };
  const takeLength = () => {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = take(1)[0]!;
      length |= (byte & 127) << shift;
      if (byte < 128) return length;
    }
  };
  return {
    remaining: () => bytes.length - at,
    take,
    text: () => take(takeLength()).toString(),
    time: () => Number(take(8).readBigInt64LE()),
    uuid: () => Buffer.concat([take(8).reverse(), take(8).reverse()]).toString('hex'),
    key: () => take(16).toString('hex'),
  };
}
