// The only import of @platformatic/kafka in product code: schema compilation must be deferred before the client loads.
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
