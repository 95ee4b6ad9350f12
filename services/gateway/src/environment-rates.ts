import {
  type MessageRate,
  openRecordCopy,
  type ProjectEnvironment,
  type ProjectRecord,
  type RecordCopy,
  rateOf,
} from '@playline/access-keys';
import { type OpenRecordView, openSyncedRecords, type SyncParts } from './synced-views.ts';

/**
 * Returns the rate of an environment: the administrator's cap replaces the setting, and the project's limit can only
 * lower the rate. Reads from memory and returns the same object until the rate changes.
 */
export type EnvironmentRates = (environmentId: string, setting: MessageRate) => MessageRate;

/** Keeps project records in sync with the log. While Redis is unavailable, the last known rates or settings apply. */
export function openEnvironmentRates(view: OpenRecordView<ProjectRecord>, sync: SyncParts) {
  const records = openSyncedRecords(view, sync);
  const copy = openRecordCopy({ view: records });
  return {
    ratesOf: createEnvironmentRates(copy),
    close: async () => {
      copy.close();
      await records.close();
    },
  };
}

/** Recomputes rates only when projects change, so that a request costs one map access. */
export function createEnvironmentRates(copy: Pick<RecordCopy<ProjectRecord>, 'records'>): EnvironmentRates {
  let projects: readonly ProjectRecord[] = [];
  let environments = new Map<string, ProjectEnvironment>();
  let rates = new Map<string, { readonly setting: MessageRate; readonly rate: MessageRate }>();
  return (environmentId, setting) => {
    if (projects !== copy.records) {
      projects = copy.records;
      const limited = projects.flatMap((project) => project.environments).filter(({ cap, limit }) => cap ?? limit);
      environments = new Map(limited.map((environment) => [environment.id, environment]));
      rates = new Map();
    }
    const environment = environments.get(environmentId);
    if (environment === undefined) return setting;
    const cached = rates.get(environmentId);
    if (cached?.setting === setting) return cached.rate;
    const rate = rateOf(environment, setting);
    rates.set(environmentId, { setting, rate });
    return rate;
  };
}
