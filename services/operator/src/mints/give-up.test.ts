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

/** Opens a log with one partition, whose minter takes over after each of the first `takeOvers` batches. */
function openLog(takeOvers: number) {
  const log: TransactionRecord[] = [];
  let [opened, batches] = [0, 0];
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
        if (generation <= takeOvers && batches === generation)
          throw Object.assign(new Error('fenced'), { type: 'PRODUCER_FENCED' });
        batches++;
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
  const request = { chain: 'demo-chain', signer: SIGNER, asset: null, reason: 'the key is lost' };
  return giveUpMints({ ...sources, author, audit, wallClockMs: () => 3_000 } as never, request);
}

it('giveUpMints gives up on and audits each asset of a signer once, even if the minter takes over midway', async () => {
  const { log, sources } = openLog(3);
  const count = 1_800;
  log.push(...Array.from({ length: count }, (_, number) => toTransactionRecord(stateOf(number))));
  const audited: { detail: { assets: number } }[] = [];
  const { failed, skipped } = await giveUpAll(sources, audited);
  expect([failed.length, skipped.length]).toEqual([count, 0]);
  expect(new Set(failed.map(toMintStateKey)).size).toBe(count);
  expect(audited.map(({ detail }) => detail.assets)).toEqual([count]);
});

it('giveUpMints fails if a minter takes over after every batch', async () => {
  const { log, sources } = openLog(100);
  log.push(...Array.from({ length: 3_000 }, (_, number) => toTransactionRecord(stateOf(number))));
  await expect(giveUpAll(sources, [])).rejects.toThrow(/took over 5 times. Stop the minter and run the command again/);
});
