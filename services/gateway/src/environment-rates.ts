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
 * The rate of an environment: an administrator's cap replaces the setting, and the project's limit can only lower it.
 * Answers from memory, with the same object until something changes.
 */
export type EnvironmentRates = (environmentId: string, setting: MessageRate) => MessageRate;

/** Keeps project records in sync with the log. While Redis is away the last known rates apply, at first the settings. */
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

/** Recomputed on a change, so a request costs one map access. */
export function createEnvironmentRates(copy: Pick<RecordCopy<ProjectRecord>, 'records'>): EnvironmentRates {
  let of: readonly ProjectRecord[] = [];
  let environments = new Map<string, ProjectEnvironment>();
  let rates = new Map<string, { readonly setting: MessageRate; readonly rate: MessageRate }>();
  return (environmentId, setting) => {
    if (of !== copy.records) {
      of = copy.records;
      const limited = of.flatMap((project) => project.environments).filter(({ cap, limit }) => cap ?? limit);
      environments = new Map(limited.map((environment) => [environment.id, environment]));
      rates = new Map();
    }
    const environment = environments.get(environmentId);
    if (environment === undefined) return setting;
    const known = rates.get(environmentId);
    if (known?.setting === setting) return known.rate;
    const rate = rateOf(environment, setting);
    rates.set(environmentId, { setting, rate });
    return rate;
  };
}
