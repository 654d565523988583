/** Parts of forms and toolbars: labelled fields, choices, tabs. */

import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, useId } from "react";
import { Icon } from "./icons";
import "./form.css";

export function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: (id: string) => ReactNode }): ReactNode {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint ? <small className="muted">{hint}</small> : null}
    </div>
  );
}

type TextProps = Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value"> & {
  label: string; value: string; change: (value: string) => void; hint?: ReactNode;
};

export function TextField({ label, hint, value, change, ...rest }: TextProps): ReactNode {
  return (
    <Field label={label} hint={hint}>
      {(id) => <input id={id} className="input" value={value} onChange={(event) => change(event.target.value)} spellCheck={false}
        autoComplete="off" {...rest} />}
    </Field>
  );
}

export function LinesField({ label, hint, value, change, rows = 4 }: {
  label: string; hint?: ReactNode; value: string; change: (value: string) => void; rows?: number;
}): ReactNode {
  return (
    <Field label={label} hint={hint}>
      {(id) => <textarea id={id} className="input mono" rows={rows} value={value} spellCheck={false}
        onChange={(event) => change(event.target.value)} />}
    </Field>
  );
}

type Options = readonly (readonly [value: string, name: string])[];
type ChoiceProps = Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> & {
  label: string; value: string; change: (value: string) => void; options: Options; hint?: ReactNode;
};

export function ChoiceField({ label, hint, value, change, options, ...rest }: ChoiceProps): ReactNode {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select id={id} className="input" value={value} onChange={(event) => change(event.target.value)} {...rest}>
          {options.map(([each, name]) => <option key={each} value={each}>{name}</option>)}
        </select>
      )}
    </Field>
  );
}

/** A choice without a visible label, for toolbars. */
export function Pick({ label, value, change, options }: {
  label: string; value: string; change: (value: string) => void; options: Options;
}): ReactNode {
  return (
    <select className="input pick" aria-label={label} value={value} onChange={(event) => change(event.target.value)}>
      {options.map(([each, name]) => <option key={each} value={each}>{name}</option>)}
    </select>
  );
}

export function Filter({ label, value, change }: { label: string; value: string; change: (value: string) => void }): ReactNode {
  return (
    <span className="filter">
      <Icon name="search" size={14} />
      <input className="input" type="search" aria-label={label} placeholder={label} value={value} maxLength={200}
        onChange={(event) => change(event.target.value)} />
    </span>
  );
}

/** A choice of one of a few, side by side. */
export function Segments({ label, value, change, options }: {
  label: string; value: string; change: (value: string) => void; options: Options;
}): ReactNode {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map(([each, name]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => change(each)}>{name}</button>
      ))}
    </div>
  );
}
