import {
  type MessageRate,
  openRecordCopy,
  PROJECTS,
  type ProjectEnvironment,
  type ProjectRecord,
  type RecordCopy,
  rateOf,
} from '@playline/access-keys';
import type { Closable } from '@playline/runtime';
import { type OpenRecordView, openLevelRecords } from './level-records.ts';
import type { LevelParts } from './level-stores.ts';

/**
 * The rate of an environment. An administrator's cap replaces the setting; the project's own limit can only lower the
 * result. Answers from memory, which is at most a second old while Redis answers. Gives the same object until something
 * changes, and the setting itself where the project says nothing.
 */
export type EnvironmentRates = (environmentId: string, setting: MessageRate) => MessageRate;

interface EnvironmentRatesParts {
  /** Of `PROJECTS`; closed with the rates. */
  view: OpenRecordView<ProjectRecord>;
  level: LevelParts;
}

/**
 * Opens what projects say of rates, and keeps their records in Redis level with the log. While Redis is away, what was known
 * last goes on; before it is known for the first time, the settings do.
 */
export function openEnvironmentRates({ view, level }: EnvironmentRatesParts): { ratesOf: EnvironmentRates } & Closable {
  const copy = openRecordCopy({ view });
  const records = openLevelRecords({ kind: PROJECTS, view, level });
  return {
    ratesOf: createEnvironmentRates(copy),
    close: async () => {
      copy.close();
      await records.close();
    },
  };
}

/** Builds the rates of a copy; made anew when projects have changed, so that a request costs one look into a map. */
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
