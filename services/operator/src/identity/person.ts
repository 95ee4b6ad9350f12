import * as people from '@playline/people';
import { UnreachableError } from '../command.ts';
import type { Subject } from './subject.ts';

const NO_EPOCH =
  'Redis holds no identity graph that is whole (it has no epoch), so it cannot tell who belongs to whom: npm run ' +
  'rebuild puts back what it held; a new deployment is set up by npm run identity -- init';

/** Turns an incomplete graph into an UnreachableError with advice. */
function askWhole<T>(answer: Promise<T>): Promise<T> {
  return answer.catch((fault: unknown) => {
    throw fault instanceof people.MissingEpochFault ? new UnreachableError(NO_EPOCH) : fault;
  });
}

/** @throws UnreachableError when the graph is incomplete */
export const readPerson = (source: people.PersonSource, subject: Subject): Promise<people.Person> =>
  askWhole(people.readPerson(source, subject));

/** @throws UnreachableError when the graph is incomplete */
export const readHousehold = (source: people.PersonSource, subject: Subject): Promise<people.Household> =>
  askWhole(people.readHousehold(source, subject));
