/** Values of RowBinary bytes, read one after the other, independently of their writer. */
export interface RowBinary {
  /** Bytes that are left. */
  left(): number;
  /** @throws Error when fewer bytes are left */
  take(count: number): Buffer;
  text(): string;
  /** Epoch milliseconds, and any other signed number of 8 bytes. */
  time(): number;
  /** Hexadecimal. */
  uuid(): string;
  /** Hexadecimal. */
  key(): string;
}

export function createRowBinary(bytes: Buffer): RowBinary {
  let at = 0;
  const take = (count: number) => {
    if (at + count > bytes.length) throw new Error('the last row is cut off');
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
    left: () => bytes.length - at,
    take,
    text: () => take(takeLength()).toString(),
    time: () => Number(take(8).readBigInt64LE()),
    uuid: () => Buffer.concat([take(8).reverse(), take(8).reverse()]).toString('hex'),
    key: () => take(16).toString('hex'),
  };
}
