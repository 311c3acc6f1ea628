// Where caps are set, as a person names it: all trials, a project, a trial by its number or name, and of each
// a metric group.
import { printable } from "./printable";

export type Owner = "all" | "project" | "trial";

export interface Place {
  readonly owner: Owner;
  /** Of the project or trial; a trial's number, if it is all digits. */
  readonly name: string;
  /** Of a trial that the master named: its project, and `name` is its name, digits or not. */
  readonly project?: string;
  /** "" = all groups. */
  readonly metricGroup: string;
}

export const allTrials: Place = { owner: "all", name: "", metricGroup: "" };

export function isAllTrials(place: Place): boolean {
  return place.owner === "all" && place.metricGroup === "";
}

export function isSamePlace(one: Place, other: Place): boolean {
  return one.owner === other.owner && one.name === other.name && one.metricGroup === other.metricGroup && one.project === other.project;
}

/** As the master names it. */
interface WirePlace {
  readonly owner: { readonly case: "project"; readonly value: string }
    | { readonly case: "trial"; readonly value: { readonly trialId: bigint; readonly project: string; readonly externalId: string } }
    | { readonly case: undefined; readonly value?: undefined };
  readonly metricGroup: string;
}

export function placeAt(wire: WirePlace | undefined): Place {
  const metricGroup = wire?.metricGroup ?? "";
  if (wire?.owner.case === "project") return { owner: "project", name: wire.owner.value, metricGroup };
  if (wire?.owner.case === "trial") {
    const { trialId, project, externalId } = wire.owner.value;
    if (trialId > 0n) return { owner: "trial", name: String(trialId), metricGroup };
    return { owner: "trial", name: externalId, project: project || "default", metricGroup };
  }
  return { owner: "all", name: "", metricGroup };
}

export function placeOf(place: Place) {
  const { name, project, metricGroup } = place;
  switch (place.owner) {
    case "all": return { metricGroup };
    case "project": return { metricGroup, owner: { case: "project" as const, value: name } };
    case "trial": return { metricGroup, owner: { case: "trial" as const, value: project !== undefined ? { project, externalId: name } : /^\d{1,18}$/.test(name) ? { trialId: BigInt(name) } : { externalId: name } } };
  }
}

export function placeText(place: Place): string {
  const { project = "default" } = place;
  const owner = place.owner === "all" ? "all trials" : `${place.owner} ${printable(place.name)}${project === "default" ? "" : ` of project ${printable(project)}`}`;
  return place.metricGroup === "" ? owner : `${owner}, group ${printable(place.metricGroup)}`;
}
