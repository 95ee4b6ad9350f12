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

/** An alert fired or cleared. */
export interface AlertChange extends Finding {
  readonly id: string;
  readonly state: 'fired' | 'cleared' | 'test';
  readonly firedAt: number;
  /** Epoch milliseconds of the change. */
  readonly changedAt: number;
}

/** Each change goes to every channel of its project. The audit log also receives failures of the other channels. */
export const ALERT_CHANNELS = ['audit', 'webhook', 'e-mail'] as const;

export type AlertChannel = (typeof ALERT_CHANNELS)[number];

export interface DeliveryFailure {
  readonly channel: AlertChannel;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly failedAt: number;
}

export interface PendingDelivery {
  readonly channel: AlertChannel;
  readonly change: AlertChange;
  /** A failed delivery of the change, for the audit log; null to deliver the change itself. */
  readonly failure: DeliveryFailure | null;
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
  return { ...finding, id: randomUUID(), state, ...times };
}

export const toDeliveries = ({ changes }: AlertStep): PendingDelivery[] =>
  changes.flatMap((change) => ALERT_CHANNELS.map((channel) => ({ channel, change, failure: null })));

/** Returns the delivery that records a failure. */
export const toFailed = ({ change }: PendingDelivery, failure: DeliveryFailure): PendingDelivery => ({
  channel: 'audit',
  change,
  failure,
});

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
  /** Writes a step together with the deliveries of its changes. Returns false and writes nothing if the owner has lost the turn. */
  write(owner: string, step: AlertStep, nowMs: number): Promise<boolean>;
  acknowledge(alert: FiringAlert, acknowledgement: Acknowledgement): Promise<void>;
  /**
   * Returns the oldest delivery to a channel of a project. Until it is settled, no other delivery to this channel of the
   * project is returned. After `RETRY_MS`, it is returned again, because a process can exit. Returns null if nothing is due.
   */
  claim(channel: AlertChannel, nowMs: number): Promise<PendingDelivery | null>;
  /** Removes a delivery, and adds its failure, if any, to the deliveries to the audit log. Has no effect the second time. */
  settle(delivery: PendingDelivery, failure: DeliveryFailure | null, nowMs: number): Promise<void>;
}

/** Longer than all attempts of a delivery. */
export const RETRY_MS = 120_000;
