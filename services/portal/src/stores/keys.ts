import {
  createKeyLog,
  createLoggedKeyStore,
  type KeyLog,
  type KeyRecord,
  type KeyStore,
  type KeyView,
  rebuildKeys,
  ViewFault,
} from '@playline/access-keys';
import { accessKeyCodec, schemaSubjectOf, TOPICS } from '@playline/contracts';
import { type Producer, type StreamRecord, sendAll } from '@playline/stream';
import type { LogParts } from './noun.ts';

/** Keys of environments, as pages work with them. */
export interface Keys {
  /** Every key of a project, ended ones too, oldest first. */
  list(projectId: string): Promise<readonly KeyRecord[]>;
  /** For changes, which are on the log before they are in force. */
  readonly store: KeyStore;
}

export interface KeysParts extends Omit<LogParts, 'producer'> {
  readonly producer: Pick<Producer, 'send'>;
  readonly view: KeyView;
}

/** Keys over their view in Redis and their log. */
export function createKeys({ view, ...parts }: KeysParts): Keys {
  const log = createLog(parts);
  const store = createLoggedKeyStore(view, log);
  const broughtIn = async (change: Promise<boolean>) => {
    try {
      return await change;
    } catch (fault) {
      if (!(fault instanceof ViewFault)) throw fault;
      // The log has the change: a key that was ended must not live on because Redis missed one write.
      await rebuildKeys(view, log);
      return true;
    }
  };
  const replace: KeyStore['replace'] = (ended, added) => broughtIn(store.replace(ended, added));
  const amend: KeyStore['amend'] = (changed) => broughtIn(store.amend(changed));
  return { list: store.list, store: { ...store, replace, amend } };
}

function createLog({ producer, reader, registry, topicPrefix }: Omit<KeysParts, 'view'>): KeyLog {
  const topic = topicPrefix + TOPICS.accessKeys.name;
  const read = async () => {
    const records: StreamRecord[] = [];
    for (const range of await reader.bounds(topic))
      for await (const record of reader.read({ topic, ...range })) records.push(record);
    return records;
  };
  const send: Parameters<typeof createKeyLog>[0]['send'] = (records) =>
    sendAll(
      producer,
      records.map((record) => ({ topic, ...record })),
    );
  const logWith = (schemaId: number) => createKeyLog({ schemaId, schemaOf: registry.schemaOf, send, read });
  return {
    readAll: logWith(0).readAll,
    append: async (records) =>
      logWith(await registry.idOf(schemaSubjectOf(topic), accessKeyCodec.schema)).append(records),
  };
}
