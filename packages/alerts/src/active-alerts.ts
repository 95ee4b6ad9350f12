/** Decides when alerts of projects fire and clear, and the port of the store that contains them. */
import { randomUUID } from 'node:crypto';
import type { ProjectRuleName } from './project-rules.ts';

/** The condition of a rule is true in an environment. */
export interface Finding {
  readonly rule: ProjectRuleName;
  readonly projectId: string;
  readonly environmentId: string;
  readonly value: number;
  /** One sentence that contains the value. Must not contain secrets or player ids. */
  readonly text: string;
}

/** An alert that is firing, or whose condition has been true once. */
export interface ActiveAlert extends Finding {
  /** Epoch milliseconds; null until the alert fires. */
  readonly firedAt: number | null;
  /** Number of consecutive evaluations after which the alert has not changed yet. */
  readonly contrary: number;
}

export interface FiringAlert extends ActiveAlert {
  readonly firedAt: number;
}

export const isFiring = (alert: ActiveAlert): alert is FiringAlert => alert.firedAt !== null;

/** Identifies an alert: each rule has at most one alert per environment. */
export const keyOfAlert = ({ environmentId, rule }: Pick<Finding, 'environmentId' | 'rule'>): string =>
  `${environmentId} ${rule}`;

/** An alert fired or cleared, and has to be recorded and delivered. */
export interface AlertChange extends Finding {
  readonly id: string;
  readonly state: 'fired' | 'cleared' | 'test';
  readonly firedAt: number;
  /** Epoch milliseconds of the change. */
  readonly changedAt: number;
  readonly isDelivered: boolean;
  /** Whether the audit log contains the change. */
  readonly isRecorded: boolean;
  /** Failed deliveries that the audit log does not contain yet. */
  readonly failures: readonly RecordableFailure[];
}

export interface RecordableFailure {
  readonly channel: string;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly failedAt: number;
}

/** A rule cannot decide whether its condition is true in an environment, so its alert does not change. */
export interface Undecided extends Pick<Finding, 'rule' | 'environmentId'> {
  readonly isUndecided: true;
}

/** The findings of each rule; null if the rule could not be evaluated, which changes none of its alerts. */
export type Findings = ReadonlyMap<ProjectRuleName, readonly (Finding | Undecided)[] | null>;

export interface AlertStep {
  readonly changed: readonly ActiveAlert[];
  /** Keys of alerts that are no longer active. */
  readonly removed: readonly string[];
  readonly changes: readonly AlertChange[];
}

/** One evaluation can catch a restart or a pause between two minutes. Two are 30 s apart. */
export const EVALUATIONS_TO_CHANGE = 2;

/** Applies the findings of one evaluation: an alert fires and clears after two evaluations with the same result. */
export function advance(active: readonly ActiveAlert[], findings: Findings, nowMs: number): AlertStep {
  const known = new Map(active.map((alert) => [keyOfAlert(alert), alert]));
  const changed: ActiveAlert[] = [];
  const removed: string[] = [];
  const changes: AlertChange[] = [];
  for (const finding of [...findings.values()].flatMap((found) => found ?? [])) {
    const { firedAt, contrary } = known.get(keyOfAlert(finding)) ?? { firedAt: null, contrary: 0 };
    known.delete(keyOfAlert(finding));
    if ('isUndecided' in finding) continue;
    const fires = firedAt === null && contrary + 1 >= EVALUATIONS_TO_CHANGE;
    if (fires) changes.push(toChange('fired', finding, { firedAt: nowMs, changedAt: nowMs }));
    const next = firedAt === null && !fires ? contrary + 1 : 0;
    changed.push({ ...finding, firedAt: fires ? nowMs : firedAt, contrary: next });
  }
  // The remaining alerts have no finding. Rules that no longer exist have no findings either.
  for (const [key, alert] of known) {
    if (findings.get(alert.rule) === null) continue;
    const clears = !isFiring(alert) || alert.contrary + 1 >= EVALUATIONS_TO_CHANGE;
    if (clears) removed.push(key);
    else changed.push({ ...alert, contrary: alert.contrary + 1 });
    if (clears && isFiring(alert))
      changes.push(toChange('cleared', alert, { firedAt: alert.firedAt, changedAt: nowMs }));
  }
  return { changed, removed, changes };
}

export function toChange(
  state: AlertChange['state'],
  { rule, projectId, environmentId, value, text }: Finding,
  times: Pick<AlertChange, 'firedAt' | 'changedAt'>,
): AlertChange {
  const finding = { rule, projectId, environmentId, value, text };
  return { ...finding, id: randomUUID(), state, ...times, isDelivered: false, isRecorded: false, failures: [] };
}

export interface Acknowledgement {
  /** Account id. */
  readonly by: string;
  readonly at: number;
  /** Identifies the acknowledged alert among those with the same key. */
  readonly firedAt: number;
}

export type StoredAlert = ActiveAlert & { readonly acknowledged: Acknowledgement | null };

/** Ignores an acknowledgement of an earlier alert with the same key. */
export function toStored(alert: ActiveAlert, acknowledged: Acknowledgement | undefined): StoredAlert {
  const applies = acknowledged !== undefined && isFiring(alert) && acknowledged.firedAt === alert.firedAt;
  return { ...alert, acknowledged: applies ? acknowledged : null };
}

/** Shared by all portal processes. @throws if the store does not respond */
export interface AlertStore {
  /** Lets one process evaluate at a time. Returns false if another process has the turn. */
  takeTurn(owner: string, lifetimeMs: number): Promise<boolean>;
  read(): Promise<StoredAlert[]>;
  /** Returns the time of the last step that was written; null if none was. */
  evaluatedAt(): Promise<number | null>;
  /** Writes a step together with its changes. Returns false and writes nothing if the owner has lost the turn. */
  write(owner: string, step: AlertStep, nowMs: number): Promise<boolean>;
  acknowledge(alert: FiringAlert, acknowledgement: Acknowledgement): Promise<void>;
  /** Returns a change to deliver. Returns it again after `RETRY_MS` unless it is settled, because a process can exit. */
  claim(nowMs: number): Promise<AlertChange | null>;
  /** @param remaining what has to be done later; null if nothing */
  settle(change: AlertChange, remaining: AlertChange | null, nowMs: number): Promise<void>;
}

/** Longer than all attempts to deliver a change. */
export const RETRY_MS = 120_000;
