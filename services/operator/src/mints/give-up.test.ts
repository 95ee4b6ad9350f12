import { frameRecord, type MintStateRecord, mintStateCodec, TOPICS, toMintStateKey } from '@playline/contracts';
import type { AtomicPublisher, LogBounds, LogReader, StreamRecord, TransactionRecord } from '@playline/stream';
import { expect, it } from 'vitest';
import type { WritableLogSources } from '../writable-log.ts';
import { giveUpMints } from './give-up.ts';
import { SIGNER, stateRecordOf } from './test/mint-state.ts';

const SCHEMA_ID = 1;
const topic = TOPICS.mintStates.name;

const stateOf = (number: number) => stateRecordOf(`asset-${number}`, { stage: 'accepted', reason: null });

const toTransactionRecord = (state: MintStateRecord): TransactionRecord => ({
  topic,
  partition: 0,
  key: Buffer.from(toMintStateKey(state)),
  headers: {},
  value: frameRecord(SCHEMA_ID, mintStateCodec.encode(state)),
});

/** A log of one partition whose minter takes over `takeOvers` times, each time after the operator wrote a batch. */
function openLog(takeOvers: number) {
  const log: TransactionRecord[] = [];
  let [opened, pieces] = [0, 0];
  const reader: LogReader = {
    bounds: async (name): Promise<LogBounds[]> =>
      name === topic ? [{ partition: 0, start: 0, end: log.length } as LogBounds] : [],
    committed: async () => new Map(),
    async *read({ start, end }) {
      for (let offset = Number(start); offset < Number(end); offset++)
        yield { ...log[offset]!, offset } as unknown as StreamRecord;
    },
    close: async () => {},
  };
  const openPublisher = async (): Promise<AtomicPublisher> => {
    const generation = ++opened;
    return {
      publish: async (records) => {
        if (generation <= takeOvers && pieces === generation)
          throw Object.assign(new Error('fenced'), { type: 'PRODUCER_FENCED' });
        pieces++;
        log.push(...records);
      },
      close: async () => {},
    };
  };
  const schemas = { idOf: async () => SCHEMA_ID, schemaOf: async () => mintStateCodec.schema };
  const sources = { openLog: async () => reader, openPublisher, schemas, topicPrefix: '' };
  return { log, sources: sources as unknown as WritableLogSources };
}

function giveUpAll(sources: WritableLogSources, audited: unknown[]) {
  const author = { changedBy: 'ada', requestId: 'r' };
  const audit = async (entry: unknown) => void audited.push(entry);
  const order = { chain: 'demo-chain', signer: SIGNER, only: null, reason: 'the key is lost' };
  return giveUpMints({ ...sources, author, audit, wallClockMs: () => 3_000 } as never, order);
}

it('mints give-up ends all assets of a signer even if its minter takes over between batches, and audits each asset once', async () => {
  const { log, sources } = openLog(3);
  const count = 1_800;
  log.push(...Array.from({ length: count }, (_, number) => toTransactionRecord(stateOf(number))));
  const audited: { detail: { assets: number } }[] = [];
  const { ended, carried } = await giveUpAll(sources, audited);
  expect([ended.length, carried.length]).toEqual([count, 0]);
  expect(new Set(ended.map(toMintStateKey)).size).toBe(count);
  expect(audited.map(({ detail }) => detail.assets)).toEqual([count]);
});

it('mints give-up fails with an instruction if a minter takes over after every batch', async () => {
  const { log, sources } = openLog(100);
  log.push(...Array.from({ length: 3_000 }, (_, number) => toTransactionRecord(stateOf(number))));
  await expect(giveUpAll(sources, [])).rejects.toThrow(/took over 5 times. Stop it and run the command again/);
});
