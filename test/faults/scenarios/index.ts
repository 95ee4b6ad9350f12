import { redisAwayFromLinker, redisWiped } from '../linker-redis.ts';
import type { Scenario } from '../world/trial.ts';
import { engineKilled } from '../writer-engine-killed.ts';
import { oldEventKept } from '../writer-old-event.ts';
import { hostileBodies, oneBadAmongMany } from './bodies.ts';
import { brokerAbsent, brokerKilled, brokerStopped } from './broker.ts';
import { drainUnderLoad, drainWithHeldAnswers } from './drain.ts';
import { gatewayKilledBeforeAnswer, gatewayKilledUnderLoad } from './gateway-killed.ts';
import { leaderReplacedWhileWaiting } from './leader-replaced.ts';
import { leadersMove } from './leaders.ts';
import { logShortenedUnseen, logShortenedWhileRead } from './log-shortened.ts';
import { redisLosesLastWrites, refusedConsentArrivesLate } from './lost-writes.ts';
import { memoryBounded } from './memory.ts';
import { partitionsMove } from './rebalance.ts';
import { redisGoesBack } from './redis-goes-back.ts';
import { limitStoreAway, registryAndLimitStoreAway, registryAway } from './stores-away.ts';

export const GATEWAY_SCENARIOS: readonly Scenario[] = [
  brokerAbsent,
  brokerStopped,
  gatewayKilledBeforeAnswer,
  gatewayKilledUnderLoad,
  registryAndLimitStoreAway,
  drainWithHeldAnswers,
  drainUnderLoad,
  hostileBodies,
  oneBadAmongMany,
  partitionsMove,
  brokerKilled,
];

export const LINKER_SCENARIOS: readonly Scenario[] = [
  engineKilled,
  redisAwayFromLinker,
  redisWiped,
  redisGoesBack,
  redisLosesLastWrites,
  oldEventKept,
  logShortenedWhileRead,
  logShortenedUnseen,
];

export const CLUSTER_SCENARIOS: readonly Scenario[] = [leaderReplacedWhileWaiting, leadersMove];

/** Not part of every test run, because they take long or others cover them. `npm run faults` includes them. */
const FURTHER_SCENARIOS: readonly Scenario[] = [memoryBounded, registryAway, limitStoreAway, refusedConsentArrivesLate];

export const SCENARIOS: readonly Scenario[] = [
  ...GATEWAY_SCENARIOS,
  ...LINKER_SCENARIOS,
  ...CLUSTER_SCENARIOS,
  ...FURTHER_SCENARIOS,
].sort((one, other) => one.fault - other.fault);
