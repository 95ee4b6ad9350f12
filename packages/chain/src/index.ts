export * from './activity-id.ts';
export * from './chain-nodes.ts';
export * from './cursor.ts';
export type { Parsed } from './import/fields.ts';
export { createParseActivity, createParseToken, type ImportContext } from './import/parse-activity.ts';
export { keccak } from './logs/abi-reader.ts';
export { type BridgeEvent, type BridgeSettings, parseBridge } from './logs/bridges.ts';
export { describeErc20, describeTokens } from './logs/describe-token.ts';
export type { Summary, UnreadReason } from './logs/log-reading.ts';
export {
  createReadActivities,
  type LegacyToken,
  type LogRecords,
  type LogSettings,
  type ReadLog,
} from './logs/read-activities.ts';
export {
  type BlockName,
  type BlockRange,
  checkLinks,
  ForkFault,
  type ReadBlocks,
  readRange,
} from './logs/read-range.ts';
export * from './node.ts';
export * from './page.ts';
export * from './rows.ts';
export * from './store.ts';
export * from './watermarks.ts';
export * from './wire.ts';
