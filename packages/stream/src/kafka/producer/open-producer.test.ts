import { expect, it } from 'vitest';
import { toProduceRequest } from './open-producer.ts';

it('a produce request requires acknowledgement by all in-sync replicas', () => {
  const request = toProduceRequest([{ topic: 'topic', partition: 0, bytes: Buffer.alloc(1), attemptsUntil: 0 }]).buffer;
  const noTransaction = request.readUInt8(0);
  const acks = request.readInt16BE(1);
  expect({ noTransaction, acks }).toEqual({ noTransaction: 0, acks: -1 });
});
