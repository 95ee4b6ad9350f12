/** Numbers of Kafka's protocol that several requests send. */

/** Replica id of an ordinary client. */
export const NO_REPLICA = -1;
/** The sender does not know the leader's epoch. */
export const NO_EPOCH = -1;
/** No fetch session: every request names everything it wants. */
export const NO_SESSION = { id: 0, epoch: -1 } as const;
/** Special timestamps that ask for the first offset of a log and for its end. */
export const EARLIEST = -2n;
export const LATEST = -1n;
/** Also shows what lies after an open transaction. */
export const READ_UNCOMMITTED = 0;
/** Only records of transactions that were committed or aborted; open ones are not shown. */
export const READ_COMMITTED = 1;
/** So that an answer contains one batch: brokers always send at least one whole batch. */
export const ONE_BATCH_BYTES = 1;
