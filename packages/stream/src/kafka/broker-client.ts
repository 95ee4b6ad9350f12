// What this package takes of @platformatic/kafka. Product code imports it from here and nowhere else, so that the
// client is never evaluated before its schemas are deferred.
import './deferred-schemas.ts';

export {
  Admin,
  Base,
  type Broker,
  type Connection,
  type ConnectionOptions,
  crc32c,
  fetchV17,
  initProducerIdV4,
  kGetConnection,
  listOffsetsV7,
  offsetCommitV8,
  offsetForLeaderEpochV4,
  produceV9,
  protocolErrorsCodesById,
  UserError,
  Writer,
} from '@platformatic/kafka';
