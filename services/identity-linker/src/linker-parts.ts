import type { SchemaSource } from '@playline/contracts';
import type { People, StepRules } from '@playline/people';
import type { Logger, Metrics } from '@playline/runtime';
import type { BatchHandler, Consumer, LogReader, Producer } from '@playline/stream';
import type { ParkedPace } from './steps/parked-facts.ts';
import type { PlacePace } from './steps/parked-place.ts';

/** The ports and settings that a linker works with. */
export interface LinkerParts {
  people: Pick<People, 'graph' | 'guards' | 'ready' | 'takesWrites'>;
  producer: Producer;
  /** Reads links and decisions that are on the log. */
  log: Pick<LogReader, 'bounds' | 'read'>;
  /** Opens the consumer of the link topic. */
  openConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Opens the consumer of the parked place. */
  openParkedConsumer(handler: BatchHandler): Promise<Consumer>;
  /** Texts of the schemas that link facts and decisions were written with. */
  schemaOf: SchemaSource;
  /** Id of the decisions' schema. */
  decisionSchemaId(): Promise<number>;
  rules: StepRules;
  /** Generation of the link topic. */
  generation: number;
  linkTopic: string;
  /** Topic of the parked place. */
  parkedTopic: string;
  decisionTopic: string;
  /** Default: the pace of a deployment. */
  parkedPace?: ParkedPace;
  placePace?: PlacePace;
  metrics: Metrics;
  logger: Logger;
}
