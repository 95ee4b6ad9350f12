import { createHash } from 'node:crypto';
import { EpochPresentFault, MissingEpochFault } from '../faults.ts';
import {
  type Applied,
  type Cutoff,
  DEFAULT_LIMITS,
  type FactBlock,
  GraphBehindFault,
  type GraphLimits,
  type IdentityGraph,
  type LinkSourcePartition,
  type Override,
} from '../graph.ts';
import type { GraphFact } from '../identities/steps.ts';
import { decideStep } from './decide.ts';
import { createEnvironment, type EnvironmentState, removeMember } from './environment.ts';

interface Model {
  readonly limits: GraphLimits;
  readonly environments: Map<string, EnvironmentState>;
  /** Last applied offset by partition. */
  readonly progress: Map<string, number>;
  readonly marks: Map<string, string>;
  epoch: string | null;
}

/**
 * Opens the graph as a plain model: unit tests run on it, and the property tests hold the real one against it.
 * Nothing outlives the process.
 */
export function openMemoryIdentityGraph(limits: GraphLimits = DEFAULT_LIMITS): IdentityGraph {
  const model: Model = { limits, environments: new Map(), progress: new Map(), marks: new Map(), epoch: null };
  return {
    ...createFactCalls(model),
    ...createQuestions(model),
    ...createErasureMarks(model),
    ...createRebuild(model),
    ready: async () => model.epoch !== null,
    takesWrites: async () => true,
    close: async () => {},
  };
}

function environmentOf({ environments }: Model, id: string): EnvironmentState {
  const state = environments.get(id) ?? createEnvironment();
  environments.set(id, state);
  return state;
}

function nameOf({ generation, partition }: LinkSourcePartition): string {
  return `${generation}/${partition}`;
}

function appliedOf({ progress }: Model, source: LinkSourcePartition): number {
  return progress.get(nameOf(source)) ?? -1;
}

function createFactCalls(
  model: Model,
): Pick<IdentityGraph, 'apply' | 'lastApplied' | 'noteMark' | 'readMark' | 'trim'> {
  const needEpoch = () => {
    if (model.epoch === null) throw new MissingEpochFault();
  };
  return {
    async apply(block: FactBlock, onPart?: (applied: readonly Applied[]) => void) {
      needEpoch();
      const applied = appliedOf(model, block);
      if (applied < block.after) throw new GraphBehindFault(applied);
      const results = block.facts.map((fact): Applied => {
        const { outbox } = environmentOf(model, fact.environmentId);
        const field = `${nameOf(block)}/${fact.offset}`;
        if (fact.offset <= applied) return toRecorded(model, fact, outbox.get(field));
        const result = applyFact(model, fact);
        outbox.set(field, result);
        return result;
      });
      model.progress.set(nameOf(block), Math.max(applied, block.through));
      onPart?.(results);
      return results;
    },
    async lastApplied(source) {
      needEpoch();
      return appliedOf(model, source);
    },
    async noteMark(source, mark) {
      model.marks.set(nameOf(source), mark);
    },
    readMark: async (source) => model.marks.get(nameOf(source)) ?? null,
    async trim(source, through, environmentIds) {
      for (const id of environmentIds)
        for (const field of environmentOf(model, id).outbox.keys()) {
          const [generation, partition, offset] = field.split('/').map(Number);
          if (generation === source.generation && partition === source.partition && offset! <= through)
            environmentOf(model, id).outbox.delete(field);
        }
    },
  };
}

function applyFact(model: Model, fact: GraphFact): Applied {
  const state = environmentOf(model, fact.environmentId);
  if (fact.steps.length === 0) return { kind: 'done' };
  const person = parkedBy(state, fact);
  if (person !== null) return { kind: 'parked', person };
  const { limits } = model;
  return { kind: 'decided', decisions: fact.steps.map((step) => decideStep(state, { fact, step, limits })) };
}

function createQuestions(model: Model): Pick<IdentityGraph, 'rootOf' | 'membersOf' | 'digest' | 'readEpoch'> {
  return {
    async rootOf(environmentId, key) {
      const root = environmentOf(model, environmentId).roots.get(key.toString('hex'));
      return root === undefined ? null : Buffer.from(root, 'hex');
    },
    async membersOf(environmentId, key) {
      const { roots, members } = environmentOf(model, environmentId);
      const of = members.get(roots.get(key.toString('hex')) ?? '') ?? new Map();
      return [...of].sort().map(([hex, member]) => ({ key: Buffer.from(hex, 'hex'), ...member }));
    },
    async digest(environmentId) {
      const { roots, members } = environmentOf(model, environmentId);
      const lines = [...roots].map(([key, root]) => {
        const member = members.get(root)!.get(key)!;
        return `${key} ${root} ${member.kind} ${member.linkedAt}\n`;
      });
      return createHash('sha256').update(lines.sort().join('')).digest('hex');
    },
    readEpoch: async () => model.epoch,
  };
}

function createErasureMarks(model: Model): Pick<IdentityGraph, 'fence' | 'hold' | 'release'> {
  return {
    async fence(cutoffs) {
      for (const cutoff of cutoffs) raise(environmentOf(model, cutoff.environmentId).fences, cutoff);
    },
    async hold(cutoff) {
      raise(environmentOf(model, cutoff.environmentId).holds, cutoff);
    },
    async release(environmentId, key) {
      environmentOf(model, environmentId).holds.delete(key.toString('hex'));
    },
  };
}

function createRebuild(model: Model): Pick<IdentityGraph, 'mintEpoch' | 'load' | 'loadApplied'> {
  const needNoEpoch = () => {
    if (model.epoch !== null) throw new EpochPresentFault();
  };
  return {
    async mintEpoch() {
      model.epoch ??= 'memory';
      return model.epoch;
    },
    async load(overrides: readonly Override[]) {
      needNoEpoch();
      for (const row of overrides) loadOverride(environmentOf(model, row.environmentId), row);
    },
    async loadApplied(source, offset) {
      needNoEpoch();
      model.progress.set(nameOf(source), Math.max(offset, appliedOf(model, source)));
    },
  };
}

/** That a fact was parked is recorded, not by whom: holds come and go. */
function toRecorded(model: Model, fact: GraphFact, recorded: Applied | undefined): Applied {
  if (recorded?.kind !== 'parked') return recorded ?? { kind: 'done' };
  const state = environmentOf(model, fact.environmentId);
  return { kind: 'parked', person: parkedBy(state, fact) ?? personOf(state, fact.steps[0]!.aKey) };
}

function personOf(state: EnvironmentState, key: Buffer): Buffer {
  const hex = key.toString('hex');
  return Buffer.from(state.roots.get(hex) ?? hex, 'hex');
}

/** Person key of the first whom the fact touches and whose hold it is newer than; null when there is none. */
function parkedBy(state: EnvironmentState, fact: GraphFact): Buffer | null {
  const newer = [...state.holds].filter(([, cutoffMs]) => fact.receivedAt > cutoffMs).map(([held]) => held);
  const held = new Set(newer.map((hex) => personOf(state, Buffer.from(hex, 'hex')).toString('hex')));
  const touched = fact.steps.flatMap(({ aKey, bKey }) => [personOf(state, aKey), personOf(state, bKey)]);
  return touched.find((person) => held.has(person.toString('hex'))) ?? null;
}

function raise(cutoffs: Map<string, number>, { key, cutoffMs }: Cutoff): void {
  const hex = key.toString('hex');
  cutoffs.set(hex, Math.max(cutoffMs, cutoffs.get(hex) ?? 0));
}

function loadOverride(state: EnvironmentState, row: Override): void {
  const key = row.key.toString('hex');
  const root = row.root.toString('hex');
  const known = removeMember(state, key);
  const members = state.members.get(root) ?? new Map();
  state.members.set(root, members.set(key, known ?? { kind: row.kind, linkedAt: row.linkedAt }));
  state.roots.set(key, root);
}
