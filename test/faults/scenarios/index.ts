import type { Scenario } from '../world/trial.ts';
import { hostileBodies, oneInvalidAmongMany } from './bodies.ts';
import { brokerAbsent, brokerKilled, brokerStopped, memoryBounded } from './broker.ts';
import {
  drainUnderLoad,
  drainWithPendingResponses,
  gatewayKilledBeforeResponse,
  gatewayKilledUnderLoad,
  limitStoreUnavailable,
  registryAndLimitStoreUnavailable,
  registryUnavailable,
} from './gateway.ts';
import { deploymentGrows } from './growth.ts';
import { leaderReplacedWhileWaiting, leadersMove } from './leaders.ts';
import { logTruncatedWhileRead, logTruncatedWhileStopped, oldEventStored } from './log.ts';
import { redisLosesLastWrites, redisUnavailableToLinker, redisWiped, refusedConsentArrivesLate } from './redis.ts';
import { redisRestoredFromCopy } from './redis-restored.ts';
import { engineKilled, partitionsMove } from './services.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...[brokerAbsent, brokerStopped, brokerKilled, memoryBounded, gatewayKilledBeforeResponse, gatewayKilledUnderLoad],
  ...[engineKilled, redisUnavailableToLinker, redisWiped, redisLosesLastWrites],
  ...[registryUnavailable, limitStoreUnavailable, registryAndLimitStoreUnavailable, oldEventStored, partitionsMove],
  ...[drainWithPendingResponses, drainUnderLoad, hostileBodies, oneInvalidAmongMany],
  ...[leaderReplacedWhileWaiting, leadersMove, logTruncatedWhileRead, logTruncatedWhileStopped],
  ...[refusedConsentArrivesLate, redisRestoredFromCopy],
  deploymentGrows,
];
