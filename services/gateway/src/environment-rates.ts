import {
  type MessageRate,
  openRecordCopy,
  type ProjectEnvironment,
  type ProjectRecord,
  type RecordCopy,
  rateOf,
} from '@playline/access-keys';
import type { Closable } from '@playline/runtime';
import { type OpenRecordView, openSyncedRecords, type SyncParts } from './synced-views.ts';

/**
 * Returns the rate of an environment. An administrator's cap replaces the setting. The project's own limit can only
 * lower the result. Answers from memory, which is at most a second old while Redis answers. Returns the same object
 * until something changes, and the setting itself when the project has no limit.
 */
export type EnvironmentRates = (environmentId: string, setting: MessageRate) => MessageRate;

interface EnvironmentRatesParts {
  /** Of `PROJECTS`; closed with the rates. */
  view: OpenRecordView<ProjectRecord>;
  sync: SyncParts;
}

/**
 * Opens the rates of projects, and keeps the project records in Redis up to date with the log. While Redis is away, the
 * rates last known apply. Before they are known for the first time, the settings apply.
 */
export function openEnvironmentRates({ view, sync }: EnvironmentRatesParts): { ratesOf: EnvironmentRates } & Closable {
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

/** Builds the rates from a copy of the projects. Recomputed on a change, so a request costs one map look-up. */
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
