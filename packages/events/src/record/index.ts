export { encodeMessages } from './encode-messages.ts';
export { createScannedEncoder, type EncodeScanned } from './encode-scanned.ts';
export type { EncodedRecord, KeyOf, KeyOfBytes, RecordEnvelope, SourcedMessage } from './envelope.ts';
export { type IdentityReference, identitiesOf, type MessageIdentities } from './identities.ts';
export {
  createScannedBatch,
  FIELD,
  type Field,
  type FieldName,
  isEscaped,
  ROW_SHIFT,
  ROW_WIDTH,
  type ScannedBatch,
  textOf,
  UUID_BYTES,
} from './ranges.ts';
